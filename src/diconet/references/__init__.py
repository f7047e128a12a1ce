"""Methods that diconet is compared with; they learn nothing."""
