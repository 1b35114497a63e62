/** What a session does, as people see it: a word, and a sign beside it. */
import CircleAlert from "lucide/dist/esm/icons/circle-alert.mjs";
import CircleCheck from "lucide/dist/esm/icons/circle-check.mjs";
import CircleDashed from "lucide/dist/esm/icons/circle-dashed.mjs";
import CircleDot from "lucide/dist/esm/icons/circle-dot.mjs";
import CirclePause from "lucide/dist/esm/icons/circle-pause.mjs";
import CircleX from "lucide/dist/esm/icons/circle-x.mjs";
import GitPullRequest from "lucide/dist/esm/icons/git-pull-request.mjs";
import LoaderCircle from "lucide/dist/esm/icons/loader-circle.mjs";
import Moon from "lucide/dist/esm/icons/moon.mjs";
import { hasEnded } from "../projects/project.ts";
import type { Answer } from "../../src/cli/contract.ts";
import { Icon, type IconNode } from "./icon.tsx";
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
  queued: CircleDashed,
  starting: LoaderCircle,
  working: CircleDot,
  needs_you: CircleAlert,
  ready_for_review: GitPullRequest,
  resting: CirclePause,
  asleep: Moon,
  failed: CircleX,
  done: CircleCheck,
};

export const ActivityIcon = ({ activity }: { readonly activity: Activity }) => (
  <Icon icon={SIGNS[activity]} className="activity" data-activity={activity} />
);
