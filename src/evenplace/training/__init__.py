"""Photos + places → model."""
