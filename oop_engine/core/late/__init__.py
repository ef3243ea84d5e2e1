"""Pages whose columns are made when somebody reads them."""
