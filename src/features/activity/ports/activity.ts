/** What happened in projects, for people who read it afterwards: the events that are news (domain/service/news.ts). */
import * as Context from "effect/Context";
import type { News } from "../../../domain/service/news.ts";
import type { BadCursor } from "../../../store/ports/errors.ts";
import type { Stored } from "../../../store/ports/journal.ts";
import type { Page, PageRequest } from "../../../store/ports/page.ts";
import type { ProjectReader } from "../../../store/ports/projects/projects.ts";

interface Named {
  readonly id: string;
  readonly name: string;
}

export interface ActivityEntry {
  /** Its place among all of them: a later one has a higher number. */
  readonly number: number;
  readonly kind: News;
  readonly at: number;
  readonly project: Named;
  /** Null if the entry is about none, or it was deleted. */
  readonly session: {
    readonly id: string;
    readonly name: string | null;
    readonly triggerSlug: string | null;
    /** Its beginning. */
    readonly prompt: string | null;
  } | null;
  readonly changeRequest: { readonly number: number; readonly title: string } | null;
  /** Who opened or merged the request, commented on it, asked for a review, or asked for the session that waited. Null for other entries, and if it is unknown. */
  readonly person: Named | null;
  /** It is about a session, a request for one or a change request of the reader, answers a comment of hers, or asks her. */
  readonly isOwn: boolean;
  /** Of the event. */
  readonly data: Readonly<Record<string, unknown>>;
}

export interface ActivityRequest extends PageRequest {
  /** Whose entries are marked as her own. */
  readonly personId: string;
  /** Whether only those are listed. */
  readonly isOwn: boolean;
  /** Null for all projects of the reader. */
  readonly projectId: string | null;
}

export class Activity extends Context.Service<
  Activity,
  {
    /** Newest first. */
    readonly list: (
      reader: ProjectReader,
      request: ActivityRequest,
    ) => Stored<Page<ActivityEntry>, BadCursor>;
    /** Until when the person has seen the list. Null if she never looked. */
    readonly seenAt: (personId: string) => Stored<number | null>;
    /** Notes that she has seen it until then. An earlier instant than before changes nothing. */
    readonly see: (personId: string, at: number) => Stored<void>;
  }
>()("platform/activity/Activity") {}
