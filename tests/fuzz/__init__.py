"""Random calls of everything public, good, extreme and wrong: each is right, refused cleanly, or a defect."""
