# One flow for each pattern of losses, all in one run and each on a link of its own.
#
#   ns one_flow.tcl agent=Newreno singledup=0 bugfix=true patterns=3:3,7:60
#
# A pattern names the packets of the sender that are lost, by when they leave: its SYN is 0, the next packet 1, and so
# on, retransmissions included. Prints a trace line ("+ time from to tcp size flags flow source destination number uid")
# of every packet that a sender hands to its link; pattern i runs from node 2i to node 2i+1, its SYN has number 0, its
# segments have 1, 2, ... What is not set here has ns-2's default.
array set P {
    agent Reno  singledup 0  bugfix true  patterns ""
    segments 60  iw 4  wnd 20  bw 10e6  delay 0.050  mss 1460
}
foreach kv $argv { lassign [split $kv =] k v; set P($k) $v }

set ns [new Simulator]
foreach pattern [split $P(patterns) :] {
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $b $P(bw) $P(delay) DropTail
    $ns queue-limit $a $b 100000
    $ns queue-limit $b $a 100000

    # a packet is lost before it takes any time on the line
    set losses [new ErrorModel/List]
    $losses unit pkt
    if {$pattern ne ""} { $losses droplist [split $pattern ,] }
    $losses drop-target [new Agent/Null]
    if {$pattern ne ""} { $ns lossmodel $losses $a $b }

    set tcp [new Agent/TCP/$P(agent)]
    set sink [new Agent/[expr {$P(agent) eq "Sack1" ? "TCPSink/Sack1" : "TCPSink"}]]
    $tcp set packetSize_ $P(mss)
    $tcp set window_ $P(wnd)
    $tcp set windowInit_ $P(iw)
    $tcp set singledup_ $P(singledup)
    $tcp set bugFix_ $P(bugfix)
    # a full acknowledgement leaves min (ssthresh, FlightSize + 1), RFC 6582's option (1); ns-2's default is option (2)
    if {$P(agent) eq "Newreno"} { $tcp set exit_recovery_fix_ 1 }
    $ns attach-agent $a $tcp
    $ns attach-agent $b $sink
    $ns connect $tcp $sink
    $ns trace-queue $a $b stdout
    $ns at 0.0 "$tcp advance $P(segments)"
}
$ns at 100.0 { flush stdout; exit 0 }
$ns run
