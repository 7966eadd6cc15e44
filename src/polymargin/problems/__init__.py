"""What is solved: optimisation problems as frozen arrays that certify any point; no algorithm."""
