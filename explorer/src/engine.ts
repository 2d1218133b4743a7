/** The simulator: plans in, tables out. The same crates as native, so the same numbers. */

interface Exports {
  readonly memory: WebAssembly.Memory;
  input(bytes: number): number;
  simulate(seed: bigint, capture: number): number;
  observe(): number;
  segments(connection: number): number;
  output(): number;
  output_length(): number;
}

type Values = Uint8Array | Uint16Array | Uint32Array | Int32Array | BigInt64Array | BigUint64Array | Float64Array;

const TYPES: Record<string, new (memory: ArrayBuffer, start: number, length: number) => Values> = {
  u1: Uint8Array,
  "<u2": Uint16Array,
  "<u4": Uint32Array,
  "<i4": Int32Array,
  "<i8": BigInt64Array,
  "<u8": BigUint64Array,
  "<f8": Float64Array,
};

/** A table of the records, column by column. */
export class Table {
  constructor(
    private readonly places: Readonly<Record<string, Place>>,
    private readonly output: () => Uint8Array,
  ) {}

  /** Its rows. */
  get length(): number {
    const [place] = Object.values(this.places);
    return place === undefined ? 0 : place[2] / Number(place[0].slice(-1));
  }

  /** The values of a column as numbers; nanoseconds of a run are far below 2^53. To be had until the engine's next call. */
  column(name: string): ArrayLike<number> {
    const place = this.places[name];
    if (place === undefined) throw new Error(`the records have no column ${name}`);
    const [type, start, bytes] = place;
    const values = TYPES[type];
    if (values === undefined) throw new Error(`the records have values of type ${type}`);
    const { buffer, byteOffset } = this.output();
    const column = new values(buffer as ArrayBuffer, byteOffset + start, bytes / Number(type.slice(-1)));
    return column instanceof BigInt64Array || column instanceof BigUint64Array ? asNumbers(column) : column.slice();
  }

  /** Several of them, by name. */
  columns<Column extends string>(...names: Column[]): Record<Column, ArrayLike<number>> {
    return Object.fromEntries(names.map((name) => [name, this.column(name)])) as Record<Column, ArrayLike<number>>;
  }
}

/** Of a column: the type of its values, where it starts behind the text, and its bytes. */
type Place = readonly [type: string, start: number, bytes: number];

/** By halves: a BigInt for each value would take ten times as long. */
function asNumbers({ buffer, byteOffset, length }: BigInt64Array | BigUint64Array): Float64Array {
  const [low, high] = [new Uint32Array(buffer, byteOffset, 2 * length), new Int32Array(buffer, byteOffset, 2 * length)];
  const numbers = new Float64Array(length);
  for (let index = 0; index < length; index++) numbers[index] = low[2 * index]! + high[2 * index + 1]! * 2 ** 32;
  return numbers;
}

/** Tables by name. */
export interface Records {
  table(name: string): Table;
}

/** Those of a simulation. */
export interface Simulated extends Records {
  /** In a run with segments: sender events in words, by the numbers of old state, new state and trigger in the table `sender_events`. */
  readonly senderEvents: readonly (readonly (readonly string[])[])[] | null;
}

/** The contents of a capture. */
export interface Observed extends Records {
  readonly packets: number;
  /** Problems of reading, with counts. */
  readonly problems: readonly [string, number][];
}

/** The simulator refused the plan: one sentence. */
export class Refused extends Error {}

export class Engine {
  private calls = 0;
  private exports: Exports;

  constructor(private readonly module: WebAssembly.Module) {
    this.exports = this.started();
  }

  private started(): Exports {
    return new WebAssembly.Instance(this.module).exports as unknown as Exports;
  }

  /** One replicate of a plan, which is JSON, with every segment if `capture`. Throws Refused. */
  simulate(plan: string, seed: number, capture: boolean): Simulated {
    return this.called(new TextEncoder().encode(plan), () => this.exports.simulate(BigInt(seed), capture ? 1 : 0)) as Simulated;
  }

  /** The connections and responses of a pcap or pcapng file. Throws Refused. */
  observe(capture: Uint8Array): Observed {
    return this.called(capture, () => this.exports.observe()) as Observed;
  }

  /** The segments of one connection of that file. Throws Refused. */
  segments(capture: Uint8Array, connection: number): Table {
    return this.called(capture, () => this.exports.segments(connection)).table("segments");
  }

  private called(input: Uint8Array, call: () => number): Records {
    const number = ++this.calls;
    let done: number;
    try {
      // First: a memory that grows has another buffer.
      const place = this.exports.input(input.length);
      new Uint8Array(this.exports.memory.buffer, place, input.length).set(input);
      done = call();
    } catch (error) {
      // A trap leaves the module's memory as it was in the middle of something.
      this.exports = this.started();
      throw new Refused(`the simulator stopped: ${error instanceof Error ? error.message : String(error)}`);
    }
    const output = new Uint8Array(this.exports.memory.buffer, this.exports.output(), this.exports.output_length());
    if (done === 0) throw new Refused(new TextDecoder().decode(output));
    return unpacked(output, () => {
      if (number !== this.calls) throw new Error("these records are gone: the engine has been called again");
    });
  }
}

/** The tables in a block as crates/explore packs it; `check` throws when the block is no longer there. */
function unpacked(block: Uint8Array, check: () => void): Records {
  const length = new DataView(block.buffer, block.byteOffset).getUint32(0, true);
  const described = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length))) as { tables: Record<string, Record<string, Place>> };
  const values = block.subarray(Math.ceil((4 + length) / 8) * 8);
  const output = (): Uint8Array => {
    check();
    return values;
  };
  return { ...described, table: (name) => new Table(described.tables[name] ?? {}, output) };
}
