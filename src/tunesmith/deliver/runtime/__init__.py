"""What exports ship as it is: it calls tuned kernels without Tunesmith.

Python 3.9 and its own library suffice; a module that needs a framework has its name.
"""
