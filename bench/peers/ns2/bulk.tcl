# The bulk work of `python -m bench` in ns-2: FullTcp flows over one bottleneck, no traces.
#
#   ns bulk.tcl [key=value ...]
#
# Each flow has its own access link on either side. adelay_lo and adelay_hi (s) are the delays of
# the first and the last flow's access links, the others lie evenly between: equal values give the
# even form, 0.0005 and 0.0015 the uneven one. Prints one line of key=value pairs: packets and
# drops are those of the bottleneck's forward and reverse queue, util is in per cent of bw (from
# packets of full size: ns-2's count of bytes wraps at 2^32).
array set P {
    flows 10  bw 1e9  delay 0.010  abw 1e10  adelay_lo 0.001  adelay_hi 0.001
    buf 4000  wnd 200  iw 10  mss 1460  spa 2  dack 0.1  minrto 0.2  stop 40.0
}
foreach kv $argv { lassign [split $kv =] k v; set P($k) $v }

set ns [new Simulator]
foreach c {Agent/TCP Agent/TCP/FullTcp} {
    $c set window_ $P(wnd)
    $c set windowInit_ $P(iw)
    $c set minrto_ $P(minrto)
}
Agent/TCP/FullTcp set segsize_ $P(mss)
Agent/TCP/FullTcp set segsperack_ $P(spa)
Agent/TCP/FullTcp set interval_ $P(dack)

set n0 [$ns node]
set n1 [$ns node]
$ns duplex-link $n0 $n1 $P(bw) $P(delay) DropTail
# ns-2's limit counts the packet in service
$ns queue-limit $n0 $n1 $P(buf)
$ns queue-limit $n1 $n0 100000
set step [expr {$P(flows) > 1 ? ($P(adelay_hi) - $P(adelay_lo)) / ($P(flows) - 1) : 0.0}]
for {set i 0} {$i < $P(flows)} {incr i} {
    set a [$ns node]
    set b [$ns node]
    set adelay [expr {$P(adelay_lo) + $i * $step}]
    $ns duplex-link $a $n0 $P(abw) $adelay DropTail
    $ns duplex-link $n1 $b $P(abw) $adelay DropTail
    foreach {x y} [list $a $n0 $n0 $a $n1 $b $b $n1] { $ns queue-limit $x $y 100000 }
    set s [new Agent/TCP/FullTcp]
    set d [new Agent/TCP/FullTcp]
    $ns attach-agent $a $s
    $ns attach-agent $b $d
    $ns connect $s $d
    $d listen
    # one flow a millisecond, so that not all slow starts coincide
    $ns at [expr {$i * 0.001}] "$s send -1"
}

set forward [$ns monitor-queue $n0 $n1 ""]
set reverse [$ns monitor-queue $n1 $n0 ""]
proc finish {} {
    global P forward reverse
    puts [format "data_packets=%d ack_packets=%d drops=%d util=%.4f" \
        [$forward set pdepartures_] [$reverse set pdepartures_] [$forward set pdrops_] \
        [expr {[$forward set pdepartures_] * ($P(mss) + 40) * 8.0 / $P(bw) / $P(stop) * 100}]]
    exit 0
}
$ns at $P(stop) finish
$ns run
