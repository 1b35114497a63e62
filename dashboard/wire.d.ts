/**
 * What the API answers, under the names that the page uses. The types come from the API's definitions
 * (wire-schemas.d.ts). The types that are written out here belong to answers without a definition: events, and addresses of the page itself.
 */
import type * as api from "./wire-schemas.d.ts";
import type { Answers } from "./wire-schemas.d.ts";

export type {
  ChangeRequest,
  ChangeRequestDetail,
  Conversation,
  Fire,
  FireDetail,
  Invitation,
  ListedChangeRequest,
  Item,
  Machine,
  MachineDefinition,
  Member,
  Person,
  Project,
  Remark,
  RepositoryCheck,
  SessionOptions,
  Trigger,
  Usage,
} from "./wire-schemas.d.ts";

/** Read-only, because pages share the same answers. */
type Fixed<T> = T extends object ? { readonly [K in keyof T]: Fixed<T[K]> } : T;

export type Session = Fixed<api.Session>;
export type SessionChanges = Fixed<api.SessionChanges>;
export type WorkspaceChanges = Fixed<api.WorkspaceChanges>;
export type Me = Answers["GET /v1/me"];
export type AccountRole = api.Person["role"];
export type ProjectRole = api.Member["role"];

export type Failure = NonNullable<Session["failure"]>;
export type LastTurn = NonNullable<Session["last_turn"]>;
/** Since null: the conversation is not read yet. */
export type Turn = Omit<api.Turn, "since"> & { since: string | null };
export type Saved = NonNullable<Session["saved"]>;
export type Restored = NonNullable<Session["restored"]>;
export type Saves = api.SavesPage;

export type Author = NonNullable<api.Item["author"]>;
export type ContentPart = api.Item["content"][number];
export type ToolCall = NonNullable<api.Item["tool"]>;
export type Question = NonNullable<api.Item["request"]>["questions"][number];
export type Answer = NonNullable<api.Item["answer"]>;

/** A trigger that is being described: its lines, or what is missing. */

export type WorkspaceFiles = api.WorkspaceDirectory | api.WorkspaceFile;
export type WorkspaceEntry = api.WorkspaceDirectory["entries"][number];

/** Text that was added to an item's last text part. `offset`: the text's length before. */
export interface TextDelta {
  item_id: string;
  offset: number;
  text: string;
}

/** An invitation as the person who has its link sees it. */
export interface OpenInvitation {
  name: string;
  role: AccountRole;
  account: string;
  invited_by: string;
  projects: { name: string; role: ProjectRole }[];
  expires_at: string;
}

/** Where people can sign in. */
export interface Provider {
  id: string;
  label: string;
}
