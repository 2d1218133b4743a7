# How many packets does ns-2's "queue-limit 25" hold? Forty datagrams sent at one instant into a
# link of 1.5 Mbit/s. Prints delivered=N: 25, so ns-2's limit counts the packet in service.
set ns [new Simulator]
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 1.5Mb 50ms DropTail
$ns queue-limit $a $b 25
set source [new Agent/UDP]
set sink [new Agent/LossMonitor]
$source set packetSize_ 1500
$ns attach-agent $a $source
$ns attach-agent $b $sink
$ns connect $source $sink
$ns at 1.0 { for {set i 0} {$i < 40} {incr i} { $source send 1000 } }
$ns at 10.0 { puts "delivered=[$sink set npkts_]"; exit 0 }
$ns run
