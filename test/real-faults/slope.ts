/** A straight line through samples, by least squares. */
export interface Sample {
  readonly minutes: number;
  readonly value: number;
}

export interface Line {
  /** How much the value rises a minute. */
  readonly slope: number;
  /** Its standard error: what the samples' scatter alone makes of it. */
  readonly error: number;
}

/** @returns a line without a rise if the samples are too few. */
export const lineThrough = (samples: readonly Sample[]): Line => {
  const count = samples.length;
  if (count < 3) return { slope: 0, error: 0 };
  const mean = (of: (sample: Sample) => number) => samples.reduce((sum, one) => sum + of(one), 0) / count;
  const [time, value] = [mean(({ minutes }) => minutes), mean((one) => one.value)];
  const spread = samples.reduce((sum, { minutes }) => sum + (minutes - time) ** 2, 0);
  const rise = samples.reduce((sum, one) => sum + (one.minutes - time) * (one.value - value), 0);
  const slope = rise / spread;
  const scatter = samples.reduce(
    (sum, one) => sum + (one.value - value - slope * (one.minutes - time)) ** 2,
    0,
  );
  return { slope, error: Math.sqrt(scatter / (count - 2) / spread) };
};

/** Whether a value rises by more than `limit` a minute, and by more than scatter explains (two standard errors). */
export const isRising = ({ slope, error }: Line, limit: number): boolean =>
  slope > limit && slope > 2 * error;
