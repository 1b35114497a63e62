/** Records which sessions were touched, and which have something open. */
import type { Activity } from "../../../src/services/sessions/activity.ts";

export const recordedActivity = (
  touched: string[] = [],
  opened: string[] = [],
): (typeof Activity)["Service"] => ({
  touch: (id) => void touched.push(id),
  open: (id) => {
    opened.push(id);
    return () => void opened.splice(opened.indexOf(id), 1);
  },
  isOpen: (id) => opened.includes(id),
  last: () => 0,
  keep: () => undefined,
});
