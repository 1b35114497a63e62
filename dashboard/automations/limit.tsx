/** The limit of spend of a trigger's day, which owners of the project set. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { lackedRole } from "../frame/roles.ts";
import { notice } from "../frame/notices.ts";
import { AmountFields, amountIn, amountWords } from "../providers/amount.tsx";
import { Uncounted, type UncountedSession } from "../providers/uncounted.tsx";
import { Act } from "../ui/act.tsx";
import { Form } from "../ui/form.tsx";

type Limit = Answer<"GET /v1/projects/:pid/spend">["limits"][number];

/** The limits of a project, and of its triggers. */
export const projectLimitsQuery = (pid: string) =>
  queryOptions({
    queryKey: ["project-limits", pid],
    queryFn: async () => (await request("GET /v1/projects/:pid/spend", { params: { pid } })).limits,
  });

const words = ({ unit, amount, spent }: Limit): string => {
  const used = spent === null ? 0 : unit === "usd" ? spent.usd : spent.tokens;
  return `${amountWords({ unit, amount })} a day, ${amountWords({ unit, amount: used })} spent today`;
};

export const TriggerLimit = ({
  pid,
  slug,
  name,
}: {
  readonly pid: string;
  readonly slug: string;
  readonly name: string;
}) => {
  const [isOpen, setOpen] = useState(false);
  const [uncounted, setUncounted] = useState<readonly UncountedSession[]>([]);
  const known = useQueryClient();
  const { data: limits = [] } = useQuery(projectLimitsQuery(pid));
  const limit = limits.find((one) => one.scope === "trigger" && one.subject === `${pid}/${slug}`);
  const params = { pid, slug };
  const done = async (said: string): Promise<void> => {
    setOpen(false);
    notice(said);
    await known.invalidateQueries(projectLimitsQuery(pid));
  };
  return (
    <span className="parts">
      <span>{limit === undefined ? <span className="quiet">none</span> : words(limit)}</span>
      {lackedRole("set-secret") === null && (
        <span className="actions">
          <Act
            label={isOpen ? "Close" : limit === undefined ? "Set" : "Change"}
            about={`the limit of ${name}`}
            does={async () => setOpen(!isOpen)}
          />
          {limit !== undefined && (
            <Act
              label="Remove"
              about={`the limit of ${name}`}
              does={async () => {
                await request("DELETE /v1/projects/:pid/triggers/:slug/spend-limit", { params });
                await done("The limit is removed.");
              }}
            />
          )}
        </span>
      )}
      {isOpen && (
        <Form
          submit="Set the limit"
          sending="Setting…"
          onSend={async (typed) => {
            const answer = await request("PUT /v1/projects/:pid/triggers/:slug/spend-limit", {
              params,
              payload: amountIn(typed),
            });
            setUncounted(answer.uncounted_sessions);
            await done("The limit is set.");
          }}
        >
          <AmountFields {...(limit !== undefined && { initial: limit })} />
        </Form>
      )}
      <Uncounted sessions={uncounted} />
    </span>
  );
};
