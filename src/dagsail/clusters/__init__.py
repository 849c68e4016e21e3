"""Who executes placements."""
