"""The paper on identifier range based routing (Wang et al.): its workload, runs, charts and criteria."""
