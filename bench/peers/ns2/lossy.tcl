# Sack1 flows over one bottleneck that loses packets at random: the lossy work of `python -m bench` in ns-2.
#
#   ns lossy.tcl [key=value ...]
#
# Prints one line of key=value pairs: data packets that the senders sent and, of these, repetitions; packets that left the
# bottleneck's forward and reverse queue, and util, what the former are in per cent of bw.
array set P {
    flows 100  bw 250e6  delay 0.010  abw 1e9  adelay 0.001
    buf 4000  wnd 1000  iw 10  mss 1460  dack 0.04  minrto 0.2  loss 0.01  seed 1  stop 20.0
}
foreach kv $argv { lassign [split $kv =] k v; set P($k) $v }

set ns [new Simulator]
ns-random $P(seed)
Agent/TCP set window_ $P(wnd)
Agent/TCP set windowInit_ $P(iw)
Agent/TCP set minrto_ $P(minrto)
Agent/TCP set packetSize_ $P(mss)
Agent/TCPSink/DelAck set interval_ $P(dack)

set n0 [$ns node]
set n1 [$ns node]
$ns duplex-link $n0 $n1 $P(bw) $P(delay) DropTail
# ns-2's limit counts the packet in service
$ns queue-limit $n0 $n1 $P(buf)
$ns queue-limit $n1 $n0 100000
set losses [new ErrorModel]
$losses unit pkt
$losses set rate_ $P(loss)
$losses ranvar [new RandomVariable/Uniform]
$losses drop-target [new Agent/Null]
$ns link-lossmodel $losses $n0 $n1
set senders {}
for {set i 0} {$i < $P(flows)} {incr i} {
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $n0 $P(abw) $P(adelay) DropTail
    $ns duplex-link $n1 $b $P(abw) $P(adelay) DropTail
    foreach {x y} [list $a $n0 $n0 $a $n1 $b $b $n1] { $ns queue-limit $x $y 100000 }
    set s [new Agent/TCP/Sack1]
    set d [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $a $s
    $ns attach-agent $b $d
    $ns connect $s $d
    set f [new Application/FTP]
    $f attach-agent $s
    # one flow a millisecond, so that not all slow starts coincide
    $ns at [expr {$i * 0.001}] "$f start"
    lappend senders $s
}

set forward [$ns monitor-queue $n0 $n1 ""]
set reverse [$ns monitor-queue $n1 $n0 ""]
proc finish {} {
    global P forward reverse senders
    set sent 0
    set again 0
    foreach s $senders { incr sent [$s set ndatapack_]; incr again [$s set nrexmitpack_] }
    puts [format "sent_packets=%d repeated_packets=%d data_packets=%d ack_packets=%d util=%.4f" \
        $sent $again [$forward set pdepartures_] [$reverse set pdepartures_] \
        [expr {[$forward set pdepartures_] * ($P(mss) + 40) * 8.0 / $P(bw) / $P(stop) * 100}]]
    exit 0
}
$ns at $P(stop) finish
$ns run
