/** What a session does, as people see it: a word, and a sign beside it. */
import { hasEnded } from "../projects/project.ts";
import type { Answer } from "../../src/cli/contract.ts";
import { Icon } from "./icon.tsx";
import {
  CIRCLE_ALERT,
  CIRCLE_CHECK,
  CIRCLE_DASHED,
  CIRCLE_DOT,
  CIRCLE_PAUSE,
  CIRCLE_X,
  GIT_PULL_REQUEST,
  LOADER_CIRCLE,
  MOON,
  type IconNode,
} from "../elements/icons.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";

type Activity = Answer<"GET /v1/sessions">["sessions"][number]["activity"];

interface Shown {
  readonly activity: Activity;
  readonly status: string;
  readonly pending_approvals: number;
}

/** What works or waits for a person cannot be put away, but for what was asked before the session went to sleep. */
export const isAtRest = ({ activity, status, pending_approvals: calls }: Shown): boolean =>
  activity === "needs_you" ? hasEnded(status) && calls === 0 : ACTIVITY_WORDS[activity].group !== "working";

const SIGNS: Readonly<Record<Activity, IconNode>> = {
  queued: CIRCLE_DASHED,
  starting: LOADER_CIRCLE,
  working: CIRCLE_DOT,
  needs_you: CIRCLE_ALERT,
  ready_for_review: GIT_PULL_REQUEST,
  resting: CIRCLE_PAUSE,
  asleep: MOON,
  failed: CIRCLE_X,
  done: CIRCLE_CHECK,
};

export const ActivityIcon = ({ activity }: { readonly activity: Activity }) => (
  <Icon icon={SIGNS[activity]} className="activity" data-activity={activity} />
);
