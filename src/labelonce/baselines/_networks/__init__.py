"""The networks of the related work, trained on the annotations themselves; they need torch."""
