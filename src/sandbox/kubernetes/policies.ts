/** What a namespace's NetworkPolicies say of the sandboxes. Whether the network holds to them, only a trial can tell. */
import type {
  V1LabelSelector,
  V1NetworkPolicy,
  V1NetworkPolicyPeer,
  V1NetworkPolicyPort,
} from "@kubernetes/client-node";
import { LINK_PORT } from "./pod.ts";

type Labels = Readonly<Record<string, string>>;

const matches = (selector: V1LabelSelector | undefined, labels: Labels): boolean =>
  Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
  (selector?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === "Exists") return value !== undefined;
    if (operator === "DoesNotExist") return value === undefined;
    const isIn = value !== undefined && values.includes(value);
    return operator === "In" ? isIn : !isIn;
  });

interface Rule {
  readonly peers: readonly V1NetworkPolicyPeer[];
  readonly ports: readonly V1NetworkPolicyPort[];
}

/** The library's name for the field `from`. */
const FROM = "_from";

const EVERYWHERE = new Set(["0.0.0.0/0", "::/0"]);

/** Whether a rule opens one port, to chosen peers. */
const isNarrow = ({ peers, ports }: Rule, port: number): boolean =>
  peers.length > 0 &&
  peers.every(({ ipBlock }) => ipBlock === undefined || !EVERYWHERE.has(ipBlock.cidr)) &&
  ports.length > 0 &&
  ports.every((one) => one.port === port && one.endPort === undefined);

/** Without types, a policy is about incoming traffic, and about outgoing traffic if it has rules for that. */
const isAbout = ({ spec }: V1NetworkPolicy, type: "Ingress" | "Egress"): boolean =>
  spec?.policyTypes?.includes(type) ?? (type === "Ingress" || spec?.egress !== undefined);

const policyRules = ({ spec }: V1NetworkPolicy, type: "Ingress" | "Egress"): readonly Rule[] =>
  type === "Ingress"
    ? (spec?.ingress ?? []).map((rule) => ({ peers: rule[FROM] ?? [], ports: rule.ports ?? [] }))
    : (spec?.egress ?? []).map((rule) => ({ peers: rule.to ?? [], ports: rule.ports ?? [] }));

/** @param egressPort of the listener. @returns the problems, one sentence each. Empty: only the two ports are open */
export const policyProblems = (
  policies: readonly V1NetworkPolicy[],
  labels: Labels,
  egressPort: number,
): readonly string[] => {
  const selecting = policies.filter(({ spec }) => matches(spec?.podSelector, labels));
  return (
    [
      ["Egress", egressPort, "leave", "reach"],
      ["Ingress", LINK_PORT, "enter", "be reached from"],
    ] as const
  ).flatMap(([type, port, verb, reach]) => {
    const about = selecting.filter((policy) => isAbout(policy, type));
    if (about.length === 0)
      return [`no NetworkPolicy bounds what may ${verb} the sandboxes, so they can ${reach} everything`];
    return about
      .filter((policy) => !policyRules(policy, type).every((rule) => isNarrow(rule, port)))
      .map(
        ({ metadata }) =>
          `the NetworkPolicy ${metadata?.name ?? ""} lets more than port ${port} ${verb} the sandboxes`,
      );
  });
};
