"""What a run looks like: its journal as frames of a moving picture, and the page that draws them."""
