"""The operator: runs benchmark pods as NodeProbe objects ask for, from creation to clean-up."""
