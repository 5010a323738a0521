"""From finished runs to tables: what their ranks, latents and contrast say; pure numbers, nothing drawn."""
