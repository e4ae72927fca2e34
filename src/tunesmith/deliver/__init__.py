"""What the user takes home. Returns names and bytes; who writes them is not its business."""
