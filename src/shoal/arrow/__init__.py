"""From Arrow rows to codes, and from decisions back to public Arrow rows."""
