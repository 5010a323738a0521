"""From run folders to one self-contained page: plain files are read, figures drawn, no model is asked."""
