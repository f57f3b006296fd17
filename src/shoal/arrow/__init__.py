"""Turn Arrow rows into codes, and decisions back into public Arrow rows."""
