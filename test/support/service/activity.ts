/** Records which sessions were touched. */
import type { Activity } from "../../../src/services/activity.ts";

export const recordedActivity = (touched: string[] = []): (typeof Activity)["Service"] => ({
  touch: (id) => void touched.push(id),
  last: () => 0,
  keep: () => undefined,
});
