"""The live page's server: runs listed and opened, and a run that goes on shown to whoever looks on."""
