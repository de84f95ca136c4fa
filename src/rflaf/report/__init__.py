"""Pages that show results. They are made of plain data, and know no model."""
