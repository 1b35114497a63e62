/** What a session does, as people see it: a word, and a sign beside it. */
import type { ReactNode } from "react";
import { hasEnded } from "../projects/project.ts";
import type { Answer } from "../../src/cli/contract.ts";
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

const RING = <circle cx="8" cy="8" r="6" />;

const SIGNS: Readonly<Record<Activity, ReactNode>> = {
  queued: <circle cx="8" cy="8" r="6" strokeDasharray="2.2 2.5" />,
  starting: (
    <>
      <circle cx="8" cy="8" r="6" opacity="0.3" />
      <path d="M8 2a6 6 0 0 1 6 6" />
    </>
  ),
  working: (
    <>
      {RING}
      <circle className="filled" cx="8" cy="8" r="2.75" />
    </>
  ),
  needs_you: (
    <>
      <circle className="filled" cx="8" cy="8" r="7" />
      <path className="cut" d="M8 4.5v4.25M8 11.4v.1" />
    </>
  ),
  ready_for_review: (
    <>
      <circle cx="4.5" cy="4" r="1.75" />
      <circle cx="4.5" cy="12" r="1.75" />
      <circle cx="11.5" cy="12" r="1.75" />
      <path d="M4.5 5.75v4.5M11.5 10.25V6a2 2 0 0 0-2-2H8M9.5 2.25 7.75 4 9.5 5.75" />
    </>
  ),
  resting: (
    <>
      {RING}
      <path d="M6.5 6v4M9.5 6v4" />
    </>
  ),
  asleep: <path d="M13.5 9.6A5.75 5.75 0 0 1 6.4 2.5a5.75 5.75 0 1 0 7.1 7.1Z" />,
  failed: (
    <>
      {RING}
      <path d="m6 6 4 4M10 6l-4 4" />
    </>
  ),
  done: (
    <>
      {RING}
      <path d="m5.4 8.2 1.8 1.8 3.4-3.8" />
    </>
  ),
};

export const ActivityIcon = ({ activity }: { readonly activity: Activity }) => (
  <svg className="activity" data-activity={activity} viewBox="0 0 16 16" aria-hidden="true">
    {SIGNS[activity]}
  </svg>
);
