package cluster

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsinstall "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	coreinstall "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// objects reads the objects of a manifest strictly, with defaults set, as Kubernetes has them internally.
func objects(t *testing.T, text []byte) (all []runtime.Object, err error) {
	t.Helper()
	scheme := runtime.NewScheme()
	appsinstall.Install(scheme)
	coreinstall.Install(scheme)
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		given, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			return nil, err
		}
		scheme.Default(given)
		internal, err := scheme.ConvertToVersion(given, schema.GroupVersion{Group: given.GetObjectKind().GroupVersionKind().Group, Version: runtime.APIVersionInternal})
		if err != nil {
			return nil, err
		}
		all = append(all, internal)
	}
	return all, nil
}

// problems are what Kubernetes has against an object.
func problems(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	switch o := object.(type) {
	case *core.Namespace:
		return corevalidation.ValidateNamespace(o)
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *apps.DaemonSet:
		return appsvalidation.ValidateDaemonSet(o, corevalidation.PodValidationOptions{})
	}
	t.Fatalf("nothing validates a %T", object)
	return nil
}

func manifest(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The manifest has no key that Kubernetes does not know, and none twice; all its objects are valid; and the DaemonSet may
// use what it does.
func TestManifest(t *testing.T) {
	all, err := objects(t, manifest(t))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	var daemons *apps.DaemonSet
	configs := map[string]*core.ConfigMap{}
	namespace := ""
	for _, o := range all {
		kinds = append(kinds, reflect.TypeOf(o).Elem().Name())
		for _, problem := range problems(t, o) {
			t.Errorf("%s: %v", kinds[len(kinds)-1], problem)
		}
		switch o := o.(type) {
		case *core.Namespace:
			namespace = o.Name
		case *core.ConfigMap:
			configs[o.Namespace+"/"+o.Name] = o
		case *apps.DaemonSet:
			daemons = o
		}
	}
	if got := strings.Join(kinds, " "); got != "Namespace ConfigMap DaemonSet" {
		t.Fatalf("the manifest has %s", got)
	}
	if daemons.Namespace != namespace {
		t.Errorf("the DaemonSet is in namespace %s, not %s", daemons.Namespace, namespace)
	}
	pod := daemons.Spec.Template.Spec
	if !pod.HostPID || len(pod.Containers) != 1 {
		t.Fatalf("the pod does not see the host's processes: %+v", pod)
	}
	mounted := map[string]bool{}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounted[m.Name] = true
	}
	for _, v := range pod.Volumes {
		if !mounted[v.Name] {
			t.Errorf("volume %s is not mounted", v.Name)
		}
		if c := v.ConfigMap; c != nil && configs[daemons.Namespace+"/"+c.Name] == nil {
			t.Errorf("the manifest has no ConfigMap %s", c.Name)
		}
	}
}

// What the test above would find: keys that there are not, or twice, and values that are not valid.
func TestWrongManifestsAreRefused(t *testing.T) {
	text := string(manifest(t))
	for what, change := range map[string][2]string{
		"an unknown key":           {"hostPID: true", "hostPid: true"},
		"a key twice":              {"hostPID: true", "hostPID: true\n      hostPID: true"},
		"a mount of no volume":     {"{name: state, mountPath", "{name: stat, mountPath"},
		"a selector of other pods": {"matchLabels: {app.kubernetes.io/name: ccagent}", "matchLabels: {app.kubernetes.io/name: other}"},
		"a limit below a request":  {"limits: {memory: 512Mi}", "limits: {memory: 12Mi}"},
		"a probe of nothing":       {"exec: {command: [/usr/bin/ccagent, status]}", "initialDelaySeconds: 1"},
	} {
		wrong := strings.Replace(text, change[0], change[1], 1)
		if wrong == text {
			t.Fatalf("%s: the manifest has no %q", what, change[0])
		}
		all, err := objects(t, []byte(wrong))
		found := err != nil
		for _, o := range all {
			found = found || len(problems(t, o)) > 0
		}
		if !found {
			t.Errorf("%s is not found", what)
		}
	}
}
