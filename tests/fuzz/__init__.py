"""A campaign of random calls, good, extreme and wrong, of everything public: each is right, refused cleanly, or a defect."""
