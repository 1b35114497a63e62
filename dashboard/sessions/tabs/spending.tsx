/** What a session spent on models, the limits that apply to it, and its own limit, which members set. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../../src/cli/contract.ts";
import { request } from "../../api/client.ts";
import { dollars, grouped } from "../../elements/format.ts";
import { lackedRole } from "../../frame/roles.ts";
import { notice } from "../../frame/notices.ts";
import { AmountFields, amountIn, amountWords } from "../../providers/amount.tsx";
import { Form } from "../../ui/form.tsx";
import { Detail, Row } from "../../ui/parts.tsx";
import type { Session } from "../session.ts";

type Applied = Answer<"GET /v1/projects/:pid/sessions/:sid/spend">["limits"][number];

/** It is read again with each change of the session. */
const spendingQuery = ({ project_id: pid, id: sid, updated_at: at, usage, last_turn: last }: Session) =>
  queryOptions({
    queryKey: ["spending", sid, at, usage.output_tokens, last?.at],
    queryFn: () => request("GET /v1/projects/:pid/sessions/:sid/spend", { params: { pid, sid } }),
    placeholderData: keepPreviousData,
  });

const TITLES: Readonly<Record<Applied["scope"], (name: string) => string>> = {
  session: () => "This session",
  trigger: (name) => `Trigger ${name}, today`,
  person: (name) => `${name}, this month`,
  project: (name) => `Project ${name}, this month`,
  account: () => "The account, this month",
};

const LimitLine = ({
  limit: { scope, name, unit, amount, spent, reserved },
}: {
  readonly limit: Applied;
}) => (
  <Row states={<span>{amountWords({ unit, amount })}</span>}>
    <strong>{TITLES[scope](name)}</strong>
    <Detail>
      <progress max={amount} value={Math.min(spent, amount)} aria-label={`Spent of ${TITLES[scope](name)}`} />{" "}
      {`${amountWords({ unit, amount: spent })} spent`}
      {reserved > 0 && `, ${amountWords({ unit, amount: reserved })} reserved for calls under way`}
    </Detail>
  </Row>
);

export const Spending = ({ session }: { readonly session: Session }) => {
  const { data, refetch } = useQuery(spendingQuery(session));
  if (data === undefined) return null;
  const { spent, limits } = data;
  const own = limits.find(({ scope }) => scope === "session");
  const params = { pid: session.project_id, sid: session.id };
  return (
    <section id="spending">
      <h2>Spending</h2>
      <p className="quiet">
        {`Counted by the service: ${spent.usd > 0 ? `${dollars(spent.usd)}, ` : ""}${grouped(spent.tokens)} tokens, with sessions that its agent started.`}
      </p>
      {limits.length > 0 && (
        <ul className="rows">
          {limits.map((limit, index) => (
            <LimitLine key={`${limit.scope} ${index}`} limit={limit} />
          ))}
        </ul>
      )}
      {lackedRole("send-message") === null && (
        <Form
          submit={own === undefined ? "Set the limit" : "Raise or change the limit"}
          sending="Setting…"
          onSend={async (typed) => {
            await request("PUT /v1/projects/:pid/sessions/:sid/spend-limit", {
              params,
              payload: amountIn(typed),
            });
            notice("The limit is set. If the agent has stopped for it, send a message.");
            await refetch();
          }}
        >
          <AmountFields {...(own !== undefined && { initial: own })} />
        </Form>
      )}
    </section>
  );
};
