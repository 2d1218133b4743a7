//! Plans for the tests, as JSON that a test can alter.

use firstflight_sim::{Plan, Records, simulate};
use firstflight_tcp::Profile;
use serde_json::{Value, json};

/// A link of the same rate, delay and queue in both directions.
pub fn pair(rate_bps: Option<u64>, delay_ns: u64, limit_packets: u32) -> Value {
    let link = json!({
        "rate_bps": rate_bps, "delay_ns": delay_ns, "loss": 0.0,
        "queue": {"kind": "drop_tail", "limit": {"packets": limit_packets}},
    });
    json!({"forward": link, "reverse": link})
}

/// One value per row.
pub fn column<R, T>(rows: &[R], of: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

/// A law that always gives this value.
pub fn constant(value: f64) -> Value {
    json!({"distribution": "constant", "value": value})
}

/// Clients that download files from `servers`, from time 0 on; `more` replaces and adds fields.
pub fn files(name: &str, clients: &str, servers: &str, more: &Value, tcp: &Value) -> Value {
    let mut application = json!({
        "name": name, "clients": 1, "client_hosts": clients, "server_hosts": servers, "server_choice": "by_client",
        "client_tcp": tcp, "server_tcp": tcp, "start": constant(0.0), "kind": "file_transfer",
        "size": constant(1000.0), "request_bytes": 80, "gap": constant(0.0), "direction": "download",
    });
    for (key, value) in more.as_object().unwrap() {
        application[key] = value.clone();
    }
    application
}

/// A profile with some fields replaced.
pub fn profile(name: &str, overrides: Value) -> Value {
    let mut profile = serde_json::to_value(Profile::named(name).unwrap()).unwrap();
    for (field, value) in overrides.as_object().unwrap() {
        let place = profile.pointer_mut(&format!("/{}", field.replace('.', "/")));
        *place.unwrap_or_else(|| panic!("no field {field}")) = value.clone();
    }
    profile
}

/// RFC 2415's dumbbell and web clients.
pub fn web(clients: u32, files: u32, tcp: &Value) -> Value {
    let access: Vec<Value> = (0..4).map(|_| pair(Some(10_000_000), 1_000_000, 1000)).collect();
    let constant = |value: f64| json!({"distribution": "constant", "value": value});
    let application = |more: Value| {
        let mut application = json!({
            "client_hosts": "left", "server_hosts": "right", "client_tcp": tcp, "server_tcp": tcp,
            "start": {"distribution": "uniform", "low": 0.0, "high": 5.0},
        });
        for (key, value) in more.as_object().unwrap() {
            application[key] = value.clone();
        }
        application
    };
    let mut applications = vec![application(json!({
        "name": "web", "clients": clients, "server_choice": "random", "kind": "web_page", "version": "1.0",
        "primary": {"distribution": "lognormal", "median": 2000.0, "sigma": 1.5, "maximum": 1e6},
        "inline": {"distribution": "lognormal", "median": 2000.0, "sigma": 1.5, "maximum": 1e6},
        "inline_count": constant(3.0), "request_bytes": 300, "persistent": "joined",
        "think": {"distribution": "uniform", "low": 1.0, "high": 5.0},
    }))];
    if files > 0 {
        applications.push(application(json!({
            "name": "ftp", "clients": files, "server_choice": "by_client", "kind": "file_transfer",
            "size": constant(1e6), "request_bytes": 80, "gap": constant(0.0), "direction": "download",
        })));
    }
    json!({
        "duration_ns": 60_000_000_000u64, "meter_interval_ns": 1_000_000_000u64,
        "network": {
            "topology": "dumbbell", "bottleneck": pair(Some(1_500_000), 50_000_000, 25),
            "left": access, "right": access,
        },
        "applications": applications,
    })
}

/// One file over one link, which starts at time 0.
pub fn single(link: Value, bytes: f64, tcp: &Value) -> Value {
    let constant = |value: f64| json!({"distribution": "constant", "value": value});
    json!({
        "duration_ns": 1_000_000_000_000u64,
        "network": {"topology": "chain", "links": [link]},
        "applications": [{
            "name": "file", "clients": 1, "client_hosts": "node[0]", "server_hosts": "node[1]",
            "server_choice": "by_client", "client_tcp": tcp, "server_tcp": tcp, "start": constant(0.0),
            "kind": "file_transfer", "size": constant(bytes), "request_bytes": 80, "gap": constant(0.0),
            "direction": "download", "count": 1,
        }],
    })
}

/// Runs one replicate.
pub fn run(plan: &Value, seed: u64) -> Records {
    let plan = Plan::from_json(&plan.to_string()).unwrap();
    simulate(&plan, seed, 0..1, false).unwrap()
}

/// Every table to the last bit (NaN equals itself here), in a form that is cheap to compare.
pub fn exact(records: Records) -> Vec<(String, Vec<u8>)> {
    let tables = records.into_tables().into_iter();
    tables
        .flat_map(|(table, columns)| {
            columns.into_iter().map(move |(name, column)| (format!("{table}.{name}"), column.bytes))
        })
        .collect()
}

/// The names of the columns in which two results differ, of all or of some tables.
pub fn differing(left: Records, right: Records) -> Vec<String> {
    let pairs = exact(left).into_iter().zip(exact(right));
    pairs.filter(|(left, right)| left != right).map(|((name, _), _)| name).collect()
}

/// A plan of web-search-like downloads to users whose paths are these; `more` replaces and adds fields of the
/// application.
pub fn population(users: u32, paths: Value, more: &Value, tcp: &Value) -> Value {
    let mut application = files("file", "", "", more, tcp);
    for key in ["clients", "client_hosts", "server_hosts", "server_choice"] {
        application.as_object_mut().unwrap().remove(key);
    }
    if more.get("kind").is_some() {
        // Of a file transfer alone.
        for key in ["size", "gap", "direction", "count", "request_bytes"].iter().filter(|key| more.get(**key).is_none())
        {
            application.as_object_mut().unwrap().remove(*key);
        }
    }
    json!({
        "duration_ns": 1_000_000_000_000u64,
        "population": {
            "users": users, "keep": "rows", "paths": paths, "least_buffer_packets": 10, "farther_ns": 0,
            "buckets": {
                "rtt_s": [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0],
                "down_bps": [56e3, 256e3, 512e3, 1e6, 2e6, 3e6, 5e6],
                "bdp_bytes": [1e3, 5e3, 1e4, 5e4, 1e5],
                "segments": [3, 4, 7, 10, 15, 30, 50],
            },
        },
        "applications": [application],
    })
}

/// Paths by laws that spread widely, depend on each other, and share subnets.
pub fn spread() -> Value {
    let lognormal = |median: f64, sigma: f64| json!({"distribution": "lognormal", "median": median, "sigma": sigma});
    json!({
        "kind": "marginals",
        "rtt_ns": lognormal(72e6, 0.8), "down_bps": lognormal(1.03e6, 1.1), "up_bps": lognormal(300e3, 0.7),
        "buffer_ns": {"distribution": "uniform", "low": 50e6, "high": 400e6},
        "loss": {"distribution": "empirical", "points": [[0.0, 0.0], [0.5, 0.001], [1.0, 0.03]], "interpolation": "linear"},
        "correlation": [
            1.0, -0.4, -0.2, 0.0, 0.3,
            -0.4, 1.0, 0.6, 0.0, 0.0,
            -0.2, 0.6, 1.0, 0.1, 0.0,
            0.0, 0.0, 0.1, 1.0, 0.0,
            0.3, 0.0, 0.0, 0.0, 1.0,
        ],
        "subnet_users": 5, "subnet_share": 0.5,
    })
}

/// Paths that are all the same.
pub fn alike(rtt_ns: f64, down_bps: f64, up_bps: f64, buffer_ns: f64, loss: f64) -> Value {
    let mut identity = [0.0; 25];
    (0..5).for_each(|figure| identity[6 * figure] = 1.0);
    json!({
        "kind": "marginals",
        "rtt_ns": constant(rtt_ns), "down_bps": constant(down_bps), "up_bps": constant(up_bps),
        "buffer_ns": constant(buffer_ns), "loss": constant(loss),
        "correlation": identity, "subnet_users": 1, "subnet_share": 0.0,
    })
}
