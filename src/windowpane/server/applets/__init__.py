"""Files and changes for the applets of the page."""
