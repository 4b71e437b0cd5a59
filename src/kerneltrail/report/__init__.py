"""What people read: words, figures, pages."""
