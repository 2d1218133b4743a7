# RFC 2415's dumbbell with the authors' own TCP, as it survives in ns-2.35 (Agent/TCP/BayFullTcp, baytcp/): downloads that last
# for the whole run. The authors' web client is lost, and their ftp client waits 5 s between two files, so neither is used.
#
#   ns baytcp.tcl [clients=1 size=100000000 iw=1 wnd=11 stop=360 ...]
#
# Prints one line of key=value pairs for the bottleneck towards the clients: data_packets, ack_packets (the other way),
# drops, util (per cent).
array set P {
    clients 1  size 100000000  iw 1  wnd 11  stop 360.0  apart 0.1
    bw 1.5e6  delay 0.050  abw 10e6  adelay 0.001  buf 25
    mss 1460  spa 2  dack 0.1  minrto 0.2  rto0 6.0  tick 0.1
}
foreach kv $argv {
    set i [string first = $kv]
    set P([string range $kv 0 [expr {$i - 1}]]) [string range $kv [expr {$i + 1}] end]
}

set ns [new Simulator]
foreach {name value} [list window_ $P(wnd) windowInit_ $P(iw) minrto_ $P(minrto) rtxcur_init_ $P(rto0) tcpTick_ $P(tick)] {
    Agent/TCP set $name $value
}
# Variables that ns-2.35 binds and sets no default for; values are those of Agent/TCP/FullTcp.
foreach {name value} [list segsperack_ $P(spa) segsize_ $P(mss) tcprexmtthresh_ 3 iss_ 0 nodelay_ true \
        data_on_syn_ false dupseg_fix_ true dupack_reset_ false interval_ $P(dack)] {
    Agent/TCP/BayFullTcp set $name $value
}

# n0 and n1 the routers, 2-5 client hosts at n0, 6-9 server hosts at n1
for {set i 0} {$i < 10} {incr i} { set n($i) [$ns node] }
$ns duplex-link $n(0) $n(1) $P(bw) $P(delay) DropTail
$ns queue-limit $n(0) $n(1) $P(buf)
$ns queue-limit $n(1) $n(0) $P(buf)
for {set i 2} {$i < 10} {incr i} {
    set router [expr {$i < 6 ? 0 : 1}]
    $ns duplex-link $n($i) $n($router) $P(abw) $P(adelay) DropTail
    $ns queue-limit $n($i) $n($router) $P(buf)
    $ns queue-limit $n($router) $n($i) $P(buf)
}
set down [$ns monitor-queue $n(1) $n(0) ""]
set up [$ns monitor-queue $n(0) $n(1) ""]

for {set c 0} {$c < $P(clients)} {incr c} {
    set client [new Agent/TCP/BayFullTcp]
    set server [new Agent/TCP/BayFullTcp]
    $ns attach-agent $n([expr {2 + $c % 4}]) $client
    $ns attach-agent $n([expr {6 + $c % 4}]) $server
    $ns connect $client $server
    $server listen
    $client initial-window $P(iw)
    $server initial-window $P(iw)
    set asks [new Agent/BayTcpApp/FtpClient]
    set answers [new Agent/BayTcpApp/FtpServer]
    $ns attach-agent $n([expr {2 + $c % 4}]) $asks
    $ns attach-agent $n([expr {6 + $c % 4}]) $answers
    $asks tcp $client
    $client attach-application $asks
    $server attach-application $answers
    $answers file_size $P(size)
    $ns at [expr {$c * $P(apart)}] "$asks start"
}

proc report {} {
    global down up P
    set sent [expr {[$down set bdepartures_] * 8.0 / $P(bw) / $P(stop) * 100}]
    puts "data_packets=[$down set pdepartures_] ack_packets=[$up set pdepartures_] drops=[$down set pdrops_] util=$sent"
    exit 0
}
$ns at $P(stop) report
$ns run
