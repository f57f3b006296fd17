"""The ten people of docs/ten-people.md: what is computed about them, and the pictures."""
