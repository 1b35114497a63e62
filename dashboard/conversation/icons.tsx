/** Signs of a conversation. What they stand for is said beside them in words. */
import type { ReactNode } from "react";
import { KIND_WORDS } from "../../src/domain/conversation/tool-words.ts";
import type { ToolCall } from "../wire.d.ts";

const Sign = ({ children }: { readonly children: ReactNode }) => (
  <svg className="sign-of-kind" viewBox="0 0 16 16" aria-hidden="true">
    {children}
  </svg>
);

const PAGE = "M4 1.75h5L12.25 5v9.25H4zM9 1.75V5h3.25";

const KINDS: Readonly<Record<ToolCall["kind"], ReactNode>> = {
  read: <path d={`${PAGE}M6.25 8h3.5M6.25 10.75h3.5`} />,
  edit: <path d="m2.5 13.5.75-3.25 7.5-7.5 2.5 2.5-7.5 7.5zM9.25 4.25l2.5 2.5" />,
  delete: <path d="M2.5 4.25h11M6 4V2.25h4V4M4 4.25l.6 9.5h6.8l.6-9.5M6.75 7v4M9.25 7v4" />,
  move: <path d="M2.5 8h10.25M9 4.25 12.75 8 9 11.75" />,
  search: <path d="M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.25 10.25l3.5 3.5" />,
  execute: <path d="M1.75 2.75h12.5v10.5H1.75zM4.5 6l2 2-2 2M8.25 10.25h3" />,
  think: <path d="M8 1.75A4.25 4.25 0 0 0 5.5 9.4V11h5V9.4A4.25 4.25 0 0 0 8 1.75ZM6 13.75h4" />,
  fetch: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M2 8h12M8 2c4 3.5 4 8.5 0 12M8 2c-4 3.5-4 8.5 0 12" />
    </>
  ),
  other: (
    <path d="M9.9 2.4a3.6 3.6 0 0 0-4.2 4.7L2 10.8V14h3.2l3.7-3.7a3.6 3.6 0 0 0 4.7-4.2L11.4 8.3 9 7.9 7.7 4.6Z" />
  ),
};

/** Each has its word for readers who do not see it. */
export const KindIcon = ({ kind }: Pick<ToolCall, "kind">) => (
  <>
    <Sign>{KINDS[kind]}</Sign>
    <span className="unseen">{KIND_WORDS[kind]} </span>
  </>
);

export const CopyIcon = ({ isDone }: { readonly isDone: boolean }) => (
  <Sign>
    {isDone ? <path d="m3 8.5 3.25 3.25L13 5" /> : <path d="M5.5 5.5h8v8h-8zM10.5 5.25V2.5h-8v8h2.75" />}
  </Sign>
);
