gnomon --version
