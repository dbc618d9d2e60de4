"""ACL: users and their rights."""
