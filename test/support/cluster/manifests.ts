/** The manifests of deploy/kubernetes. */
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import type { KubernetesObject } from "@kubernetes/client-node";
import { parse, parseAllDocuments } from "yaml";
import type { RoleRule } from "./api-server.ts";

const BASE = path.join(import.meta.dirname, "../../../deploy/kubernetes/base");

/** An object as it is written. */
export type Manifest = KubernetesObject & Readonly<Record<string, unknown>>;

const read = (file: string): string => readFileSync(path.join(BASE, file), "utf8");

/** The files that the base applies, and those in its directory. */
export const files = {
  applied: (parse(read("kustomization.yaml")) as { readonly resources: readonly string[] }).resources,
  present: readdirSync(BASE).filter((name) => name !== "kustomization.yaml"),
};

export const manifests: readonly Manifest[] = files.applied.flatMap((file) =>
  parseAllDocuments(read(file)).map((document) => document.toJS() as Manifest),
);

/** Those of one kind in one namespace. */
export const manifestsOf = (kind: string, namespace: string): readonly Manifest[] =>
  manifests.filter((one) => one.kind === kind && one.metadata?.namespace === namespace);

/** The service's rights in the namespace of the sandboxes. */
export const roleRules = manifestsOf("Role", "platform-sandboxes").flatMap(
  ({ rules }) => rules as readonly RoleRule[],
);
