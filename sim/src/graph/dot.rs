//! A graph as text for Graphviz.

use super::{Action, Graph};
use crate::copy::Place;
use crate::work::Work;
use std::fmt::Write as _;

/// Flag: everything.
const VERBOSE: u32 = 1;
/// Flag: handles of nodes.
const HANDLES: u32 = 1 << 10;

/// The text. Flags choose what is told of the nodes, as the driver's do.
pub fn text(graph: &Graph, flags: u32) -> String {
    let mut out = String::from("digraph dot {\n");
    let mut clusters = 0;
    write_graph(graph, flags, &mut clusters, &mut out);
    out.push_str("}\n");
    out
}

fn write_graph(graph: &Graph, flags: u32, clusters: &mut usize, out: &mut String) {
    let number = *clusters;
    *clusters += 1;
    let _ = writeln!(
        out,
        "subgraph cluster_{number} {{\nlabel=\"graph_{number}\" graph[style=\"dashed\"];"
    );
    let name = |node: usize| format!("graph_{number}_node_{}", (node - graph.handle) / 0x40 - 1);
    let state = graph.state();
    for (handle, node) in &state.nodes {
        let mut label = label(&node.action, flags);
        if flags & (VERBOSE | HANDLES) != 0 {
            let _ = write!(label, "\\n0x{handle:x}");
        }
        let label = escape(&label);
        let _ = writeln!(
            out,
            "\"{}\"[style=\"solid\" shape=\"rectangle\" label=\"{label}\"];",
            name(*handle)
        );
    }
    for (from, to) in state.edges() {
        let _ = writeln!(out, "\"{}\" -> \"{}\";", name(from), name(to));
    }
    for node in state.nodes.values() {
        if let Action::Child(child) = &node.action {
            write_graph(child, flags, clusters, out);
        }
    }
    out.push_str("}\n");
}

/// Quotes end a label, and backslashes start something in it, save for line ends.
fn escape(label: &str) -> String {
    label.replace('"', "\\\"")
}

/// What a node says. The flag of its kind adds its parameters.
fn label(action: &Action, flags: u32) -> String {
    let wants = |bit: u32| flags & (VERBOSE | 1 << bit) != 0;
    let work = match action {
        Action::Child(child) => return format!("GRAPH\\n{} nodes", child.state().nodes.len()),
        Action::Work(work) => work,
    };
    match work {
        Work::Kernel(kernel) => {
            let name = &kernel.function.kernel().name;
            let mut text = format!("KERNEL\\n{name}");
            if wants(2) {
                let ([gx, gy, gz], [bx, by, bz]) = (kernel.grid, kernel.block);
                let shared = kernel.shared;
                let _ = write!(text, "\\n<<<({gx},{gy},{gz}),({bx},{by},{bz}),{shared}>>>");
            }
            text
        }
        Work::Copy(copy) if wants(3) => {
            let [from, to] = [copy.from.place, copy.to.place].map(place);
            format!("MEMCPY\\n{from} -> {to}\\n{} bytes", copy.size())
        }
        Work::Fill(fill) if wants(4) => format!(
            "MEMSET\\n0x{:x}\\n{} x {} of {} bytes, value 0x{:x}",
            fill.to, fill.width, fill.height, fill.element, fill.value
        ),
        Work::Host(host) if wants(5) => format!("HOST\\n0x{:x}(0x{:x})", host.function, host.data),
        Work::Record(event) if wants(6) => format!("EVENT_RECORD\\n0x{:x}", event.handle),
        Work::Wait(event) if wants(6) => format!("EVENT_WAIT\\n0x{:x}", event.handle),
        Work::Alloc(memory) if wants(11) => {
            format!(
                "MEM_ALLOC\\n{} bytes at 0x{:x}",
                memory.size, memory.address
            )
        }
        Work::Free(memory) if wants(12) => format!("MEM_FREE\\n0x{:x}", memory.address),
        Work::Copy(_) | Work::Upload(_) => "MEMCPY".to_string(),
        Work::Fill(_) => "MEMSET".to_string(),
        Work::Host(_) | Work::Callback(..) => "HOST".to_string(),
        Work::Record(_) | Work::Mark(_) => "EVENT_RECORD".to_string(),
        Work::Wait(_) | Work::Await(_) => "EVENT_WAIT".to_string(),
        Work::Alloc(_) => "MEM_ALLOC".to_string(),
        Work::Free(_) | Work::Retire(_) => "MEM_FREE".to_string(),
        Work::Empty => "EMPTY".to_string(),
    }
}

fn place(place: Place) -> String {
    match place {
        Place::Device(address) => format!("device 0x{address:x}"),
        Place::Host(address) => format!("host 0x{address:x}"),
    }
}
