"""What has been planted to see whether the judge sees it."""
