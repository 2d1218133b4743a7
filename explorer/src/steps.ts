/** A quantity that keeps each value until the next time. */

export interface Steps {
  readonly timeNs: number[];
  readonly values: number[];
}

/** Of several values at one moment the last one stays. */
export function push(steps: Steps, timeNs: number, value: number): void {
  const last = steps.timeNs.length - 1;
  if (steps.timeNs[last] === timeNs) steps.values[last] = value;
  else {
    steps.timeNs.push(timeNs);
    steps.values.push(value);
  }
}

/** The index of the last of ascending times up to one; -1: all are later. */
export function placeAt(timeNs: readonly number[], time: number): number {
  let [low, high] = [0, timeNs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeNs[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The value at a time: that of the last step up to it. */
export function valueAt({ timeNs, values }: Steps, time: number): number {
  return values[placeAt(timeNs, time)] ?? 0;
}
