/** Writes down which sessions somebody was seen to reach into. */
import type { Activity } from "../../src/services/activity.ts";

export const recordedActivity = (touched: string[] = []): (typeof Activity)["Service"] => ({
  touch: (id) => void touched.push(id),
  last: () => 0,
  keep: () => undefined,
});
