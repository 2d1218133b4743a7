# RFC 2415's dumbbell in ns-2: web clients (HTTP/1.0, and the RFC's rough HTTP/1.1) and ftp
# clients of 1 MB, all over two-way FullTcp.
#
#   ns rfc2415.tcl cdf=FILE [webs=16 ftps=1 iw=1 http=1.0 seed=1 ...]
#
# cdf names the size law: a CSV of cumulative_probability,reply_bytes with one header line.
# delays=FILE writes every page's delay in s, one a line. Prints one line of key=value pairs:
# a page's delay runs from the opening of its first connection to its last byte; util, drop
# (per cent), down_packets and drops are those of the bottleneck towards the clients.
array set P {
    webs 16  ftps 1  iw 1  http 1.0  seed 1  stop 360.0
    bw 1.5e6  delay 0.050  abw 10e6  adelay 0.001  buf 25
    mss 1460  wnd 11  spa 2  dack 0.1  minrto 0.2  rto0 3.0  tick 0.01
    req 300  cdf mah1997_reply_length_cdf.csv  scale 1.0  minsize 50  maxsize 1000000
    filesize 1000000  thinklo 1.0  thinkhi 5.0  grace 4.0  delays {}
}
foreach kv $argv {
    set i [string first = $kv]
    set P([string range $kv 0 [expr {$i - 1}]]) [string range $kv [expr {$i + 1}] end]
}

set ns [new Simulator]
ns-random [expr {$P(seed) * 7919 + 13}]
set rng [new RNG]
$rng seed [expr {$P(seed) * 7919 + 13}]

foreach c {Agent/TCP Agent/TCP/FullTcp} {
    $c set window_ $P(wnd)
    $c set windowInit_ $P(iw)
    $c set minrto_ $P(minrto)
    $c set rtxcur_init_ $P(rto0)
    $c set tcpTick_ $P(tick)
}
Agent/TCP/FullTcp set segsize_ $P(mss)
Agent/TCP/FullTcp set segsperack_ $P(spa)
Agent/TCP/FullTcp set interval_ $P(dack)
Agent/TCP/FullTcp set nodelay_ true

# ---- topology: n0 and n1 the routers, 2-5 client hosts at n0, 6-9 server hosts at n1 ---------
for {set i 0} {$i < 10} {incr i} { set n($i) [$ns node] }
$ns duplex-link $n(0) $n(1) $P(bw) $P(delay) DropTail
# ns-2's limit counts the packet in service (queue_limit.tcl shows it)
$ns queue-limit $n(0) $n(1) $P(buf)
$ns queue-limit $n(1) $n(0) $P(buf)
for {set i 2} {$i < 10} {incr i} {
    set router [expr {$i < 6 ? 0 : 1}]
    $ns duplex-link $n($i) $n($router) $P(abw) $P(adelay) DropTail
    $ns queue-limit $n($i) $n($router) 1000
    $ns queue-limit $n($router) $n($i) 1000
}
set down [$ns monitor-queue $n(1) $n(0) ""]
set up [$ns monitor-queue $n(0) $n(1) ""]

# ---- pool of connection pairs, keyed by (client host, server host) ---------------------------
set connections 0
set pairs 0
proc pair_new {c s} {
    global ns n P pairs capp sapp ctcp stcp where
    set id [incr pairs]
    set ctcp($id) [new Agent/TCP/FullTcp]
    set stcp($id) [new Agent/TCP/FullTcp]
    $ns attach-agent $n($c) $ctcp($id)
    $ns attach-agent $n($s) $stcp($id)
    $ns connect $ctcp($id) $stcp($id)
    $stcp($id) listen
    set capp($id) [new Application/TcpApp $ctcp($id)]
    set sapp($id) [new Application/TcpApp $stcp($id)]
    $capp($id) connect $sapp($id)
    $ctcp($id) proc done {} "half_closed $id"
    $stcp($id) proc done {} "half_closed $id"
    set where($id) $c,$s
    return $id
}
proc pair_get {c s} {
    global pool closed connections stcp ctcp
    incr connections
    if {[info exists pool($c,$s)] && [llength $pool($c,$s)]} {
        set id [lindex $pool($c,$s) end]
        set pool($c,$s) [lrange $pool($c,$s) 0 end-1]
        $ctcp($id) reset
        $stcp($id) reset
        $stcp($id) listen
    } else {
        set id [pair_new $c $s]
    }
    set closed($id) 0
    $stcp($id) set close_on_empty_ false
    return $id
}
# a pair is used again only some seconds after both ends closed: FullTcp has no TIME_WAIT
proc half_closed {id} {
    global ns closed P
    if {[incr closed($id)] == 2} { $ns at [expr {[$ns now] + $P(grace)}] "pair_put $id" }
}
proc pair_put {id} {
    global pool where
    lappend pool($where($id)) $id
}

# ---- one file: request up, reply down, client closes at the last byte -------------------------
proc fetch {c s size done} {
    global P capp
    set id [pair_get $c $s]
    $capp($id) send $P(req) "serve $id $size {$done}"
}
proc serve {id size done} {
    global sapp stcp
    # FullTcp's "close" sends FIN even with unsent data left; close_on_empty_ waits
    $stcp($id) set close_on_empty_ true
    $sapp($id) send $size "fetched $id {$done}"
}
proc fetched {id done} {
    global ctcp
    # the next connections open before this one's FIN: the order of packets of one moment decides what a full queue drops
    eval $done
    $ctcp($id) close
}

# ---- sizes: inverse of the tabulated CDF, linear in log size between points -------------------
set cdfp {}
set cdfx {}
set f [open $P(cdf)]
gets $f
while {[gets $f line] >= 0} {
    lassign [split $line ,] p x
    lappend cdfp $p
    lappend cdfx [expr {log($x < 50 ? 50 : $x)}]
}
close $f
proc file_size {} {
    global rng P cdfp cdfx
    set u [$rng uniform 0 1]
    set lo 0
    set hi [expr {[llength $cdfp] - 1}]
    while {$hi - $lo > 1} {
        set m [expr {($lo + $hi) / 2}]
        if {[lindex $cdfp $m] <= $u} { set lo $m } else { set hi $m }
    }
    set p0 [lindex $cdfp $lo]
    set x0 [lindex $cdfx $lo]
    set slope [expr {([lindex $cdfx $hi] - $x0) / ([lindex $cdfp $hi] - $p0)}]
    set x [expr {int($P(scale) * exp($x0 + $slope * ($u - $p0)))}]
    if {$x < $P(minsize)} { return [expr {int($P(minsize))}] }
    if {$x > $P(maxsize)} { return [expr {int($P(maxsize))}] }
    return $x
}
proc any_server {} { global rng; return [expr {6 + int([$rng uniform 0 4])}] }

# ---- web clients --------------------------------------------------------------------------------
set page_delays {}
proc page_begin {w} {
    global ns P t0
    set t0($w) [$ns now]
    set c [expr {2 + $w % 4}]
    if {$P(http) eq "1.1"} {
        set sum 0
        for {set i 0} {$i < 4} {incr i} { incr sum [file_size] }
        fetch $c [any_server] $sum "page_end $w"
    } else {
        fetch $c [any_server] [file_size] "inline_begin $w"
    }
}
proc inline_begin {w} {
    global left
    set left($w) 3
    for {set i 0} {$i < 3} {incr i} {
        fetch [expr {2 + $w % 4}] [any_server] [file_size] "inline_end $w"
    }
}
proc inline_end {w} {
    global left
    if {[incr left($w) -1] == 0} { page_end $w }
}
proc page_end {w} {
    global ns t0 page_delays P rng
    lappend page_delays [expr {[$ns now] - $t0($w)}]
    $ns at [expr {[$ns now] + [$rng uniform $P(thinklo) $P(thinkhi)]}] "page_begin $w"
}
for {set w 0} {$w < $P(webs)} {incr w} {
    $ns at [$rng uniform 0 $P(thinkhi)] "page_begin $w"
}

# ---- ftp clients: files of filesize bytes back to back -----------------------------------------
set file_delays {}
proc ftp_begin {f} {
    global ns P ft0
    set ft0($f) [$ns now]
    fetch [expr {2 + $f % 4}] [expr {6 + $f % 4}] $P(filesize) "ftp_end $f"
}
proc ftp_end {f} {
    global ns file_delays ft0
    lappend file_delays [expr {[$ns now] - $ft0($f)}]
    ftp_begin $f
}
for {set f 0} {$f < $P(ftps)} {incr f} { $ns at [$rng uniform 0 1.0] "ftp_begin $f" }

# ---- report ---------------------------------------------------------------------------------------
proc median {l} {
    set l [lsort -real $l]
    set k [llength $l]
    if {!$k} { return -1 }
    if {$k % 2} { return [lindex $l [expr {$k / 2}]] }
    return [expr {([lindex $l [expr {$k / 2 - 1}]] + [lindex $l [expr {$k / 2}]]) / 2.0}]
}
proc finish {} {
    global P down up page_delays file_delays connections
    if {$P(delays) ne ""} {
        set f [open $P(delays) w]
        puts $f [join $page_delays \n]
        close $f
    }
    set arrived [$down set parrivals_]
    set drops [$down set pdrops_]
    puts [format "pages=%d page_median_s=%.4f files=%d file_median_s=%.3f util=%.3f drop=%.3f down_packets=%d drops=%d up_packets=%d up_drops=%d connections=%d" \
        [llength $page_delays] [median $page_delays] [llength $file_delays] [median $file_delays] \
        [expr {[$down set bdepartures_] * 8.0 / ($P(bw) * $P(stop)) * 100}] \
        [expr {$arrived ? 100.0 * $drops / $arrived : 0}] \
        [$down set pdepartures_] $drops [$up set pdepartures_] [$up set pdrops_] $connections]
    exit 0
}
$ns at $P(stop) finish
$ns run
