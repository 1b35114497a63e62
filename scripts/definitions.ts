/** src/cli/endpoint/definitions.ts: what the API's requests take, as plain data for the command line, which loads no schemas. */
import * as OpenApi from "effect/http-api/OpenApi";
import { Api } from "../src/assembly/api.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface Operation {
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: Schema;
    readonly required: boolean;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
  };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const isText = (value: unknown): value is string => typeof value === "string";

/** Its texts, if it takes only these. */
const choices = (members: readonly Schema[]): readonly string[] | null => {
  const kinds = members.filter(({ type }) => type !== "null");
  const texts = kinds.flatMap(({ enum: values = [] }) => values.filter(isText));
  return kinds.every((member) => member.enum?.every(isText) === true) ? [...new Set(texts)] : null;
};

/** How a field is read from a command line (src/cli/endpoint/fields.ts). */
const kind = (members: readonly Schema[]): unknown => {
  const words = choices(members);
  if (words !== null) return words;
  const [first = {}, second] = members.filter(({ type }) => type !== "null");
  if (second !== undefined) return "other";
  if (first.type === "array") return { each: kind(variants(first.items ?? {})) };
  if (first.type === "integer") return "number";
  if (first.type === "string") return first.format === "uuid" ? "id" : "text";
  return first.type === "boolean" ? "boolean" : "other";
};

const { paths, components } = OpenApi.fromApi(Api) as unknown as Document;

/** The forms that a value may have. */
const variants = (schema: Schema): readonly Schema[] => {
  if (schema.$ref !== undefined)
    return variants(components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {});
  return schema.anyOf?.flatMap(variants) ?? [schema];
};

/** The fields of a body that may have several forms, and those that each of them needs. */
const body = (forms: readonly Schema[]) => {
  const names = new Set(forms.flatMap(({ properties = {} }) => Object.keys(properties)));
  const members = (name: string) =>
    forms.flatMap(({ properties = {} }) => {
      const field = properties[name];
      return field === undefined ? [] : variants(field);
    });
  return {
    fields: Object.fromEntries([...names].map((name) => [name, kind(members(name))])),
    needs: [...names].filter((name) => forms.every(({ required = [] }) => required.includes(name))),
  };
};

const definition = ({ parameters, requestBody }: Operation) => {
  const queryParameters = parameters.filter((parameter) => parameter.in === "query");
  const query = Object.fromEntries(queryParameters.map(({ name, schema }) => [name, kind(variants(schema))]));
  const schema = requestBody?.content["application/json"]?.schema;
  const { fields, needs } = body(schema === undefined ? [] : variants(schema));
  return {
    ...(queryParameters.length > 0 && { query }),
    ...(Object.keys(fields).length > 0 && { body: fields }),
    ...(needs.length > 0 && { needs }),
  };
};

/** The text of the file: one request a line. */
export const definitions = (): string => {
  const lines = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) => {
      const route = `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;
      const text = JSON.stringify(definition(operation));
      return text === "{}" ? [] : [`  "${route}": ${text},`];
    }),
  );
  return `/** What the API's requests take. \`npm run docs\` writes this file from the API's definitions (src/http/api). */
import type { Definition } from "./fields.ts";

export const DEFINITIONS: Readonly<Record<string, Definition>> = {
${lines.join("\n")}
};
`;
};
