package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"farmhand/internal/atomicfile"
	"farmhand/registry"
)

func policyExportCmd() *cobra.Command {
	var c connection
	var out string
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write a version into a file", Args: exactly("NAME"),
		Example: "  farmhand policy export thumbnail:champion -o p.safetensors",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withPolicies(func(client policyClient) error {
				file, err := client.file(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				version := registry.VersionOf(file)
				if registry.IsVersion(args[0]) {
					if err := registry.Verify(args[0], file); err != nil {
						return err // changed on its way
					}
				}
				if out == "-" {
					_, err := cmd.OutOrStdout().Write(file)
					return err
				}
				if out == "" {
					out = registry.Short(version) + ".safetensors"
				}
				if err := atomicfile.Write(out, file, 0o644); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: policy %s, %d bytes\n", out, registry.Short(version), len(file))
				return nil
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "file, - for standard output (default: VERSION.safetensors)")
	return cmd
}

func policyImportCmd() *cobra.Command {
	var c connection
	var note string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Put a policy file into the registry; nothing acts on it yet", Args: exactly("FILE"),
		Example: "  farmhand policy import p.safetensors --note 'trained on last week'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && info.Size() > registry.MaxFile {
				return fmt.Errorf("%s has %d bytes: a policy file has at most %d", args[0], info.Size(), registry.MaxFile)
			}
			file, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("policy file: %w", err)
			}
			return c.withPolicies(func(client policyClient) error {
				v, err := client.importFile(cmd.Context(), file, note)
				if err != nil {
					return err
				}
				return c.print(cmd, v, func() { fmt.Fprintln(cmd.OutOrStdout(), registry.Short(v.Version)) })
			})
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&note, "note", "", "for what it is, or where it comes from; kept with it")
	return cmd
}
