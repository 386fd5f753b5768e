#!/bin/sh
# The inside of the lossy cable (wire.py): runs as the first process of a User-Mode Linux kernel with three interfaces.
# What comes in at vec0 goes out at vec1 and the other way round, each with a copy to vec2, a mirror port; each way out
# has what $lossy_ends and $lossy_mirror (of the kernel's command line, words joined by +) make of it.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in sched/sch_netem sched/sch_ingress sched/act_mirred sched/cls_matchall; do
    insmod "/usr/lib/uml/modules/$(uname -r)/kernel/net/$module.ko"
done
for link in vec0 vec1 vec2; do ip link set $link up promisc on; done
for ways in "vec0 vec1" "vec1 vec0"; do
    set -- $ways
    tc qdisc add dev $1 clsact
    tc filter add dev $1 ingress matchall action mirred egress mirror dev vec2 pipe action mirred egress redirect dev $2
    tc qdisc add dev $2 root netem $(echo "$lossy_ends" | tr + ' ')
done
tc qdisc add dev vec2 root netem $(echo "$lossy_mirror" | tr + ' ')
echo WIRE READY
read -r line
tc -s qdisc show
echo WIRE DONE
echo o >/proc/sysrq-trigger
sleep 10
