"""Problems and templates: their files, launches, devices, and what makes a kernel right."""
