"""The Vinifera paper (Rahimian et al., AP2PS 2012): its plan, networks, runs and plots."""
