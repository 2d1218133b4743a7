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
  constructor(private readonly columns: ReadonlyMap<string, Values>) {}

  /** The values of a column as numbers; nanoseconds of a run are far below 2^53. */
  column(name: string): ArrayLike<number> {
    const values = this.columns.get(name);
    if (values === undefined) throw new Error(`the records have no column ${name}`);
    return values instanceof BigInt64Array || values instanceof BigUint64Array ? asNumbers(values) : values;
  }
}

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

/** What a capture shows. */
export interface Observed extends Records {
  readonly packets: number;
  /** What could not be read, and how often. */
  readonly problems: readonly [string, number][];
}

/** The simulator refused the plan: one sentence. */
export class Refused extends Error {}

export class Engine {
  private constructor(
    private readonly module: WebAssembly.Module,
    private exports: Exports,
  ) {}

  static async load(bytes: BufferSource): Promise<Engine> {
    const module = await WebAssembly.compile(bytes);
    return new Engine(module, Engine.start(await WebAssembly.instantiate(module)));
  }

  private static start(instance: WebAssembly.Instance): Exports {
    return instance.exports as unknown as Exports;
  }

  /** One replicate of a plan, which is JSON, with every segment if `capture`. Throws Refused. */
  simulate(plan: string, seed: number, capture: boolean): Records {
    return this.called(new TextEncoder().encode(plan), () => this.exports.simulate(BigInt(seed), capture ? 1 : 0));
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
    let done: number;
    try {
      // First: a memory that grows has another buffer.
      const place = this.exports.input(input.length);
      new Uint8Array(this.exports.memory.buffer, place, input.length).set(input);
      done = call();
    } catch (error) {
      // A trap leaves the module's memory as it was in the middle of something.
      this.exports = Engine.start(new WebAssembly.Instance(this.module));
      throw new Refused(`the simulator stopped: ${error instanceof Error ? error.message : String(error)}`);
    }
    const start = this.exports.output();
    const output = this.exports.memory.buffer.slice(start, start + this.exports.output_length());
    if (done === 0) throw new Refused(new TextDecoder().decode(output));
    return unpacked(output);
  }
}

/** The tables in a block as crates/explore packs it. */
function unpacked(block: ArrayBuffer): Records {
  const length = new DataView(block).getUint32(0, true);
  const described = JSON.parse(new TextDecoder().decode(new Uint8Array(block, 4, length))) as {
    tables: Record<string, Record<string, [string, number, number]>>;
  };
  const base = Math.ceil((4 + length) / 8) * 8;
  return {
    ...described,
    table(name) {
      const columns = Object.entries(described.tables[name] ?? {}).map(([column, [type, start, bytes]]) => {
        const values = TYPES[type];
        if (values === undefined) throw new Error(`the records have values of type ${type}`);
        const size = Number(type.slice(-1));
        return [column, new values(block, base + start, bytes / size)] as const;
      });
      return new Table(new Map(columns));
    },
  };
}
